//! `pagetide serve`: shows the store in a browser.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result};
use pagetide_lab::Interrupt;
use pagetide_serve::{Options, PORT, ServeError, Server, address};

use crate::exit::End;
use crate::lab::StoreArgs;
use crate::output::{Output, say};

/// Show the store in a browser: browse, compare, follow a metric, watch, stop and resume campaigns
///
/// It listens on loopback and answers only requests with the token in the printed address. Each start makes a new
/// token. For a remote machine use a tunnel, as in `ssh -L 8640:localhost:8640 HOST`. Ctrl-C stops it; campaigns
/// continue.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  pagetide serve
  pagetide serve --listen 9000
  pagetide serve --listen [::1]:9000
  pagetide serve --store /srv/reclaim")]
pub struct Args {
    /// Where to listen: a port, an address, or both [default: 127.0.0.1:8640, or a free port if that is in use]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
}

/// Serves the store until Ctrl-C.
pub fn run(args: &Args, places: &StoreArgs, out: Output) -> Result<End> {
    // With this listener, Ctrl-C ends the process soon, even while a page is being made or a connection is idle.
    let _interrupt = Interrupt::listen()?;
    // If the store does not exist yet, it is created.
    let folder = places.store()?.folder().to_owned();
    let folder =
        std::path::absolute(&folder).with_context(|| format!("finding {}", folder.display()))?;
    let options = Options {
        folder,
        cache: places.cache_folder()?,
        program: std::env::current_exe().context("finding this very program")?,
    };
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let server = match args.listen {
        Some(address) => Server::bind(options, address)?,
        None => match Server::bind(options.clone(), usual) {
            Err(ServeError::Listen { .. }) => Server::bind(options, (usual.ip(), 0).into())?,
            other => other?,
        },
    };
    if let Some(warning) = server.warning() {
        say(&format!("pagetide: {warning}"));
    }
    if out.json {
        out.json(&serde_json::json!({ "url": server.url() }))?;
    } else {
        out.text(&format!(
            "{}\nOpen this address in a browser; Ctrl-C ends the server.\n",
            server.url()
        ))?;
    }
    server.run()?;
    Ok(End::Done)
}
