//! Bytes to and from a server: TCP, Unix sockets, TLS; buffers that are read and written in as few calls as can be.
