"""A broker whose role a controller decides (`enableControllerMode`): one life as slave or master after the other.

    ReplicaManager ──asks, hears──▶ controllers        RoleBook: which word counts
          │ another role, or a log that must be cut
          ▼
    one `Broker` ends, the next begins on the same store, port and identity

A role is a whole life of a broker: its parts are built from the files, by the code that every start uses. Nothing is
switched in place, so nothing can be half switched: what a master does for all begins and ends with the life.
"""
