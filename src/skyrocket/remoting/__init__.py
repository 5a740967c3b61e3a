"""asyncio around protocol/: connections, a server, a client, a router.

server       listeners, limits, idle sweep, stop          client       one connection per address, call → typed answer
router       request code → handler, exception → answer   admission    bounds per class of requests, words for "busy"
connection   one peer: frames in, answers and calls out   turn         all that one look at the sockets brought
answers      what a handler may return                    calls        our questions that wait for answers
first_byte   PROXY protocol? TLS? plain?                  tls          contexts, certificates, TLS over a transport

One thread, the event loop's; nothing here may be touched from another.
"""
