//! Telling systemd that a service of `Type=notify` is ready: one datagram (sd_notify(3)).

use std::{
    ffi::OsStr,
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// Sends a state such as `READY=1` to the service manager, if it requested that
/// (`NOTIFY_SOCKET`). Whether it did.
///
/// # Errors
/// The socket that it named cannot be written to.
pub fn tell(state: &str) -> io::Result<bool> {
    match std::env::var_os("NOTIFY_SOCKET") {
        None => Ok(false),
        Some(socket) => tell_to(&socket, state).map(|()| true),
    }
}

fn tell_to(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(socket)?,
        _ => return Err(io::Error::other("NOTIFY_SOCKET is neither a path nor an abstract name")),
    };
    let sent = UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    match sent == state.len() {
        true => Ok(()),
        false => Err(io::Error::other("the service manager took a part only")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn the_state_reaches_a_path_and_an_abstract_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        tell_to(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(received(&by_path), "READY=1");

        let name = format!("rtproof-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        tell_to(OsStr::new(&format!("@{name}")), "STOPPING=1").unwrap();
        assert_eq!(received(&by_name), "STOPPING=1");

        for nobody in ["/no/such/socket", "vsock:2:1", ""] {
            assert!(tell_to(OsStr::new(nobody), "READY=1").is_err(), "{nobody}");
        }
    }
}
