"""Users and their rights, at a broker that keeps them; and what it keeps in RocksDB, if it is Apache's.

Passwords are `secret-…`: RocketMQ's tool prints them, ours prints stars.
"""

from tests.interop.compared.verb import SINCE_5, V5, Compared, same

_AT = "-n {n} -b {b}"
_USER, _SUBJECT = "-u User{x}", "-s User:User{x}"

_OF_ACCOUNTS = (
    f"createUser {_AT} {_USER} -p secret-1",
    f"createUser {_AT} {_USER} -p secret-1",
    "createUser -n {n} -c DefaultCluster -u Super{x} -p secret-2 -t Super",
    f"createUser {_AT} -u Odd{{x}} -p secret-2 -t Strange",
    f"updateUser {_AT} {_USER} -p secret-3",
    f"updateUser {_AT} {_USER} -s disable",
    f"updateUser {_AT} -u Nobody -s disable",
    f"getUser {_AT} {_USER}",
    "getUser -n {n} -c DefaultCluster -u Super{x}",
    f"getUser {_AT} -u Nobody",
    f"listUser {_AT} -f User{{x}}",
    f"listUser {_AT} -f Nobody",
    "copyUser -f {b} -t {b} -u User{x}",
    "copyUser -f {b} -t {b} -u Nobody",
    f"createAcl {_AT} {_SUBJECT} -r Topic:Orders,Group:Shop -a Pub,Sub -i 127.0.0.1 -d Allow",
    f"createAcl {_AT} -s User:Nobody -r Topic:Orders -a Pub -d Allow",
    f"createAcl {_AT} {_SUBJECT} -r Strange:Orders -a Pub -d Allow",
    f"updateAcl {_AT} {_SUBJECT} -r Topic:Orders -a Pub -d Deny",
    f"getAcl {_AT} {_SUBJECT}",
    f"getAcl {_AT} -s User:Nobody",
    f"listAcl {_AT} {_SUBJECT}",
    f"listAcl {_AT} {_SUBJECT} -r Group:Shop",
    "copyAcl -f {b} -t {b} -s User:User{x}",
    "copyAcl -f {b} -t {b} -s User:Nobody",
    f"deleteAcl {_AT} {_SUBJECT} -r Topic:Orders",
    f"getAcl {_AT} {_SUBJECT}",
    f"deleteAcl {_AT} {_SUBJECT}",
    f"getAcl {_AT} {_SUBJECT}",
    f"deleteUser {_AT} {_USER}",
    f"deleteUser {_AT} -u Nobody",
    f"getUser {_AT} {_USER}",
)

ACCOUNTS: tuple[Compared, ...] = (
    *(Compared(command, SINCE_5, is_in_order=True) for command in _OF_ACCOUNTS),
    same("rocksDBConfigToJson -p {store}/config -t topics", (V5,)),
    same("rocksDBConfigToJson -p {store}/config -t subscriptionGroups", (V5,)),
    same("rocksDBConfigToJson -p {store}/config -t consumerOffsets", (V5,)),
    same("rocksDBConfigToJson -b {b} -t topics", (V5,)),
    same("exportMetadataInRocksDB -p {store}/config -t topics", (V5,)),
    same("exportMetadataInRocksDB -p {store}/config -t subscriptionGroups -j true", (V5,)),
)
