"""The provider: URLs, formats and factories, which turn a filesystem into a pipeline.

- `url`: what a URL of a pond, or of this machine, says
"""
