"""mqadmin's commands of name servers."""

from skyrocket.cli.mqadmin.java_text import java_list
from skyrocket.cli.mqadmin.options import Given
from skyrocket.cli.mqadmin.printing import Printer
from skyrocket.client import Admin


async def wipe_write_perm(admin: Admin, given: Given, out: Printer) -> None:
    name = given["brokerName"]
    for address, topics in (await admin.wipe_write_permission(name)).items():
        out.line(f"wipe write perm of broker[{name}] in name server[{address}] OK, {topics}")


async def add_write_perm(admin: Admin, given: Given, out: Printer) -> None:
    name = given["brokerName"]
    for address, topics in (await admin.add_write_permission(name)).items():
        out.line(f"add write perm of broker[{name}] in name server[{address}] OK, {topics}")


async def update_kv_config(admin: Admin, given: Given, out: Printer) -> None:
    await admin.put_value(given["namespace"], given["key"], given["value"])
    out.line("create or update kv config to namespace success.")


async def delete_kv_config(admin: Admin, given: Given, out: Printer) -> None:
    await admin.delete_value(given["namespace"], given["key"])
    out.line("delete kv config from namespace success.")


async def get_namesrv_config(admin: Admin, _: Given, out: Printer) -> None:
    for address, settings in (await admin.name_server_settings()).items():
        out.line(f"============{address}============")
        out.pairs("%-50s=  %s", sorted(settings.items()))


async def update_namesrv_config(admin: Admin, given: Given, out: Printer) -> None:
    key, value = given["key"], given["value"]
    done = await admin.change_name_server_settings({key: value})
    out.line(f"update name server config success!{java_list(done)}")
    out.line(f"{key} : {value}")
