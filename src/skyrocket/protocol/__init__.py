"""Bytes in motion: frames, commands, typed requests and bodies; no socket, no await.

codes     numbers of requests, answers, languages and versions
command   RemotingCommand, what a frame says
frames    bytes → commands, command → bytes; header_json and header_binary are its two header forms
requests  a type per request and answer header
bodies    the JSON that travels behind the header
errors    refusals ↔ response codes, for both sides
"""
