//! The address on which the server listens, as typed by a user.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The default port. It is fixed, so that a tunnel can be set up once.
pub const PORT: u16 = 8640;

/// Parses the text of `--listen`: a port, or an IP address or `localhost`, with or without a port. The default address
/// is 127.0.0.1, the default port [`PORT`]. Returns an error message on failure.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address);
    }
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok((loopback, port).into());
    }
    if let Some(port) = text.strip_prefix("localhost") {
        return address(if port.is_empty() { "127.0.0.1" } else { port });
    }
    text.trim_matches(['[', ']'])
        .parse::<IpAddr>()
        .map(|address| (address, PORT).into())
        .map_err(|_| "write it as 9000, 127.0.0.1 or 127.0.0.1:9000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_be_a_port_a_host_or_both() {
        for (text, shown) in [
            ("9000", "127.0.0.1:9000"),
            (":9000", "127.0.0.1:9000"),
            ("localhost", "127.0.0.1:8640"),
            ("localhost:9000", "127.0.0.1:9000"),
            ("127.0.0.1:0", "127.0.0.1:0"),
            ("::1", "[::1]:8640"),
            ("[::1]:9000", "[::1]:9000"),
            ("0.0.0.0", "0.0.0.0:8640"),
        ] {
            assert_eq!(address(text).map(|a| a.to_string()).as_deref(), Ok(shown));
        }
        assert!(address("example.org").is_err());
        assert!(address("localhost:http").is_err());
    }
}
