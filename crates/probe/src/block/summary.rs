//! Block I/O of a whole trace, by device.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::disk::{Disk, DiskCost, DiskModel};
use super::requests::{BlockObserver, Device, DirectionSums};
use crate::ProbeError;
use crate::meaning::Decoder;
use crate::trace::TraceFile;

/// Block I/O of one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// The device to which the requests went.
    pub device: Device,
    /// Sums over the reads and over the writes of the device.
    pub sums: DirectionSums,
    /// Time that the same requests would have taken on the modelled disk.
    pub modelled: DiskCost,
}

/// Block I/O of all devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockSummary {
    /// Summary of each device that had reads or writes, in order of device number.
    pub devices: Vec<DeviceSummary>,
    /// Number of reads and writes without a completion in the trace.
    pub uncompleted: u64,
    /// Number of completions without an issue in the trace, such as of requests issued before it started.
    pub unissued: u64,
}

/// Sums up the block requests of a stored trace. `model` is the disk on which their time is modelled. The requests are
/// known from `block_rq_issue` and `block_rq_complete`. Fails if a stored format cannot be parsed.
pub fn summarise(trace: &TraceFile, model: DiskModel) -> Result<BlockSummary, ProbeError> {
    let mut decoder = Decoder::for_trace(trace)?;
    let mut observer = BlockObserver::new();
    let mut disks: BTreeMap<Device, Disk> = BTreeMap::new();
    for raw in trace.events() {
        let issued = decoder
            .decode(&raw)
            .and_then(|traced| observer.observe(&traced));
        if let Some((device, request)) = issued {
            disks
                .entry(device)
                .or_insert_with(|| Disk::new(model))
                .serve(request);
        }
    }
    observer.finish();
    let (uncompleted, unissued) = observer.unmatched();
    let devices = observer
        .devices()
        .map(|(device, sums)| DeviceSummary {
            device,
            sums: sums.clone(),
            modelled: disks.get(&device).map(Disk::cost).unwrap_or_default(),
        })
        .collect();
    Ok(BlockSummary {
        devices,
        uncompleted,
        unissued,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_golden_trace_wrote_swap_in_large_requests() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/reclaim-6.18.trace");
        let trace = TraceFile::read(std::fs::File::open(path).unwrap()).unwrap();
        let summary = summarise(&trace, DiskModel::barracuda_2009()).unwrap();
        let device = &summary.devices[0];
        // 24 MiB under a limit of 16 MiB: at least 8 MiB were written, in requests larger than one page.
        assert!(device.sums.writes.bytes.0 > 8 << 20);
        assert!(device.sums.writes.mean_size().unwrap() > 4096.0);
        assert!(device.modelled.requests >= device.sums.writes.requests);
        assert!(device.modelled.total().0 > 0);
    }
}
