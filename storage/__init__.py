"""How a run is *kept*: one file, one connection, synchronous. The only user of apsw."""
