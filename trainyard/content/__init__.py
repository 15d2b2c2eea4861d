"""Content by its hash: IPFS files and directories that are verified whoever sends them."""
