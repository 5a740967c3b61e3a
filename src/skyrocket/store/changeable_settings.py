"""Which settings of an open store can be given other values; all others count when it is opened."""

from dataclasses import replace

from skyrocket.config.sections import StoreConfig

CHANGEABLE = frozenset(
    {
        "flush_interval_ms",
        "flush_least_pages",
        "flush_thorough_interval_ms",
        "queue_flush_least_pages",
        "queue_flush_thorough_interval_ms",
        "sync_flush_timeout_ms",
        "max_message_size",
        "page_cache_busy_ms",
        "max_transfer_bytes_memory",
        "max_transfer_count_memory",
        "max_transfer_bytes_disk",
        "max_transfer_count_disk",
        "file_reserved_hours",
        "delete_when",
        "disk_max_used_percent",
        "disk_clean_forcibly_percent",
        "disk_warning_percent",
        "clean_forcibly",
        "clean_interval_ms",
        "delete_pause_ms",
        "delete_queue_pause_ms",
        "delete_batch",
    }
)


def changed(current: StoreConfig, wanted: StoreConfig) -> StoreConfig:
    """The current settings with all wanted values that an open store can take."""
    return replace(current, **{name: getattr(wanted, name) for name in CHANGEABLE})
