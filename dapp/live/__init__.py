"""What happens, as it happens: a bounded sequence, and whoever listens to it."""
