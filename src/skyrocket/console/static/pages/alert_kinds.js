// What rules watch, in words.
export const ALERT_KINDS = {
  lag: "Lag",
  late_seconds: "Time lag in seconds",
  no_client: "Messages wait and no client is there",
  dead_letters_per_hour: "Dead letters per hour",
  disk: "Disk (0 to 1)",
  broker_down: "Broker down",
  name_server_down: "Name server down",
  slave_behind_bytes: "Slave behind its master (bytes)",
  skew: "Share of the lag in one queue (0 to 1)",
  stuck_seconds: "A queue that does not move (seconds)",
  delayed: "Delayed",
};
