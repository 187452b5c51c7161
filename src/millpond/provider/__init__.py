"""The provider: URLs, formats and factories, which turn a filesystem into a pipeline.

- `url`: what a URL of a pond, or of this machine, says
- `rows`, `reading`: what factories take and see; `factory`, `factories`: what they are
- `formats`, `images`: rows out of raw files, parsed once; `kept`: results under `cache/`
"""
