//! Connections that end where nothing comes or goes: half a request, a browser that was closed, a tunnel that hangs.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;

/// How long a connection may stand still. A page is made within seconds; a browser opens a new connection when it needs one.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Pause after a connection could not be taken, for lack of descriptors above all: others end meanwhile.
const PAUSE: Duration = Duration::from_millis(200);

/// A listener whose connections stand still for so long at most.
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
