"""Alembic's migrations of the dapp's database."""
