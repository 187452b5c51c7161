"""What tests of Millpond, and of plugins for it, can build on.

- `store`: the conformance suite and the state machine that every `Store` passes
- `fs`: the same for every `Persistence` of a pond's rows
- `s3`: a real S3 HTTP server on this machine
"""
