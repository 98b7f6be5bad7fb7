"""What tests share: runs, cases, servers, faults."""
