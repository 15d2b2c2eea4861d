"""How workers of one task reach each other: TLS between machines, sockets into the sandbox."""
