"""Files of strangers, on their way into the content store."""
