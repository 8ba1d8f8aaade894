"""The operator's console: pages in English and Chinese, made on the server, that work without a script."""
