"""Language models in a notebook: ``%%mmsp`` cells, functions as tools, conversations as objects.

Public names are loaded when they are first used, so that ``import mmsp_nb`` costs next to nothing.
"""
