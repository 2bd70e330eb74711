//! Closes idle connections, such as those of incomplete requests, closed browsers and tunnels that hang.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;

/// Time after which an idle connection is closed. A page is made within seconds; browsers open a new connection when
/// needed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Pause after a failure to accept a connection. The usual cause is a lack of file descriptors; during the pause, other
/// connections may be closed.
const PAUSE: Duration = Duration::from_millis(200);

/// A listener whose connections are closed after being idle for `patience`.
pub(crate) struct PatientListener {
    pub listener: TcpListener,
    pub patience: Duration,
}

impl Listener for PatientListener {
    type Io = Pin<Box<TimeoutStream<TcpStream>>>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            if let Ok((stream, address)) = self.listener.accept().await {
                let mut stream = TimeoutStream::new(stream);
                stream.set_read_timeout(Some(self.patience));
                stream.set_write_timeout(Some(self.patience));
                return (Box::pin(stream), address);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
