"""The web dapp: an index of the market, an API over it, and the page."""
