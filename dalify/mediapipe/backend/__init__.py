"""Where programs look for ``schema`` and ``opnode_tensor_info``, to register readers of their own."""
