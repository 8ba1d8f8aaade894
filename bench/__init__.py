"""The speed we owe (DESIGN 14), measured side by side in one run: ``python -m bench``."""
