"""The factories that come with Millpond; they are entry points like everybody else's."""
