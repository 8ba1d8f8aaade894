"""HTTP words in, HTTP words out: the thin Flask front."""
