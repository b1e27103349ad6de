"""tcpcast: what will TCP do here? One scenario, many ways to answer it, one kind of answer."""
