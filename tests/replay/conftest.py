from mmsp_nb.testing.plugin import no_provider_keys  # noqa: F401
