from mmsp_nb.testing.plugin import fake_provider, no_provider_keys  # noqa: F401
