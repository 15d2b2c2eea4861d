"""Signatures of wallets: run feeds, and sign-in with Ethereum."""
