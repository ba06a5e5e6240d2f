"""The documentation site: ``python -m docs.site`` writes its pages and navigation, and MkDocs makes HTML of them."""
