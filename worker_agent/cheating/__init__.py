"""Agents that cheat, to show that the market catches them: for demonstrations and tests only.

`python -m worker_agent.cheating CHEAT --home HOME --password-file FILE` runs one. Each differs from
the honest agent in as little as it can, and nothing that an operator runs leads here.
"""
