//! Functions that the emulator calls: when it translates a block, before or after instructions, and after accesses to
//! memory. `data` is what was given when the callback was registered.

use alloc::vec::Vec;
use core::ffi::{c_uint, c_void};
use core::ptr::null_mut;

use crate::api::{Handle, Id};
use crate::format::{COPY, ENTERS, EXITS, FAULT, FILLS, KERNEL, PREPARES, UNMAPS, WAKE};
use crate::pages::{Change, Pages};
use crate::{
    Ahead, FOLLOWED, NOTHING, Switching, UPDATES, function_of, profile,
};

pub extern "C" fn translated(_: Id, block: Handle) {
    profile().translate(block);
}

pub extern "C" fn counted_ahead(_: c_uint, data: *mut c_void) {
    let (profile, insn) = (profile(), data as u64);
    let function = function_of(insn);
    let count = profile.count(function) + u64::from(insn & FOLLOWED != 0);
    profile.ahead = Ahead {
        function,
        insn,
        count,
        later: profile.later(),
    };
    profile.is_done = false;
}

pub extern "C" fn accessed(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    let (profile, insn) = (profile(), data as u64);
    let function = function_of(insn);
    let count = profile.api.values()[2 * function as usize];
    if (profile.ahead.insn, profile.ahead.count) != (insn, count) {
        // QEMU 7.2 may call this callback long after the instruction, for accesses by helper functions, such as those of
        // `cmpxchg16b` or of the delivery of an interrupt. None of them is to a device.
        if !profile.api.is_device(access, at) {
            return;
        }
        let count = profile.count(function);
        let later = profile.later();
        profile.ahead = Ahead {
            function,
            insn,
            count,
            later,
        };
    }
    // If the instruction faults, the CPU accesses the kernel's memory to deliver the fault, and QEMU calls this
    // callback for these accesses too.
    if at < KERNEL {
        profile.is_done = insn & UPDATES == 0 || profile.api.is_store(access);
    }
}

pub extern "C" fn stored(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    if profile.api.is_store(access) && profile.is_own(at, data) {
        profile.count(function_of(data));
    }
}

pub extern "C" fn loaded(_: c_uint, _: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    if profile.is_own(at, data) {
        profile.count(function_of(data));
    }
}

pub extern "C" fn called(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    // A call through a pointer in memory reads that pointer first.
    if !profile.api.is_store(access) || !profile.is_own(at, data) {
        return;
    }
    let site = function_of(data);
    profile.count(site);
    let target = (data >> 24) as u32 & 0xff_ffff;
    let target = (target != 0).then_some(target);
    profile.stacks.call(site, target, at, profile.api.values());
}

pub extern "C" fn returned(_: c_uint, _: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    if !profile.is_own(at, data) {
        return;
    }
    let site = function_of(data);
    profile.count(site);
    profile.stacks.leave(site, at, profile.api.values());
}

pub extern "C" fn entering(_: c_uint, data: *mut c_void) {
    let profile = profile();
    let site = function_of(data as u64);
    profile.stacks.enter(Some(site), profile.api.values());
}

pub extern "C" fn entered(_: c_uint, data: *mut c_void) {
    let profile = profile();
    if (data as u64 >> 24) as u32 & FAULT != 0 {
        profile.take_back();
    }
    profile.ahead = NOTHING;
    profile.stacks.enter(None, profile.api.values());
}

pub extern "C" fn resumed(_: c_uint, data: *mut c_void) {
    let profile = profile();
    let site = function_of(data as u64);
    profile.stacks.resume(site, profile.api.values());
}

pub extern "C" fn switched(_: c_uint, _: *mut c_void) {
    let profile = profile();
    profile.stacks.switch(profile.api.values());
    profile.switching = Switching::Begun;
    if let Some(pages) = &mut profile.pages {
        pages.interrupt();
    }
}

pub extern "C" fn switching(_: c_uint, access: u32, at: u64, _: *mut c_void) {
    let profile = profile();
    if profile.switching == Switching::Nothing || at & KERNEL == 0 || profile.stacks.is_stack(at) {
        return;
    }
    let is_store = profile.api.is_store(access);
    match profile.switching {
        Switching::Begun if is_store => {
            profile.stacks.sleeps.learn(at, profile.stacks.now());
            profile.switching = Switching::Saved;
        }
        Switching::Saved if !is_store => {
            profile.saved = at;
            profile.switching = Switching::Nothing;
        }
        _ => {}
    }
}

pub extern "C" fn waking(_: c_uint, access: u32, at: u64, _: *mut c_void) {
    let profile = profile();
    let is_state = at & KERNEL != 0 && profile.api.kind_of(access) == (true, 4);
    let Some(distance) = profile.state_to_stack.filter(|_| is_state) else {
        return;
    };
    let (stacks, counts) = (&mut profile.stacks, profile.api.values());
    let (task, here, time) = (stacks.now(), stacks.here(), stacks.time(counts));
    stacks.sleeps.wake(at.wrapping_add(distance), task, here, time);
}

pub extern "C" fn monitoring(_: c_uint, _: *mut c_void) {
    let profile = profile();
    let saved = profile.saved;
    let known: Vec<(u64, usize)> = profile.stacks.sleeps.known().collect();
    if let Some((pages, moment)) = profile.pages() {
        pages.monitor(saved, &known, moment.at);
    }
}

pub extern "C" fn removing(_: c_uint, flags: *mut c_void) {
    let profile = profile();
    profile.list_mappings();
    if flags as u64 as u32 & EXITS != 0 {
        let now = profile.stacks.now();
        profile.stacks.sleeps.end(now);
    }
}

pub extern "C" fn dying(_: c_uint, _: *mut c_void) {
    let stacks = &mut profile().stacks;
    stacks.sleeps.die(stacks.now());
}

pub extern "C" fn forked(_: c_uint, _: *mut c_void) {
    let profile = profile();
    profile.stacks.fork();
    if let Some(pages) = &mut profile.pages {
        pages.born(profile.stacks.now());
    }
}

pub extern "C" fn changing(_: c_uint, data: *mut c_void) {
    let profile = profile();
    profile.list_mappings();
    let change = match (data as u64 >> 24) as u32 {
        flags if flags & COPY != 0 => Change::Copies,
        flags if flags & WAKE != 0 => Change::Wakes,
        _ => Change::Executes,
    };
    if let Some(pages) = &mut profile.pages {
        pages.change(profile.stacks.now(), change);
    }
}

pub extern "C" fn referred(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    // If an instruction faults, the CPU accesses the kernel's memory to deliver the fault, and QEMU may call this
    // callback for these accesses too.
    let is_recorded = |pages: &mut Pages| at & KERNEL != 0 || pages.repeats(access, at, data);
    if profile.pages.as_mut().is_none_or(is_recorded) {
        return;
    }
    let what = profile.api.kind_of(access);
    if let Some((pages, moment)) = profile.pages() {
        pages.refer(access, at, data, what, moment);
    }
}

pub extern "C" fn referred_by_kernel(_: c_uint, access: u32, at: u64, _: *mut c_void) {
    let profile = profile();
    if at & KERNEL != 0 {
        if let Some(pages) = &mut profile.pages {
            pages.pass_over();
        }
    } else {
        let what = profile.api.kind_of(access);
        if let Some((pages, moment)) = profile.pages() {
            pages.refer_by_kernel(at, what, moment);
        }
    }
}

pub extern "C" fn referred_in_role(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    referred_by_kernel(0, access, at, null_mut());
    let profile = profile();
    if at & KERNEL == 0 || profile.stacks.is_stack(at) {
        return;
    }
    let is_unmapping = profile.is_within(UNMAPS);
    let what = profile.api.kind_of(access);
    if let Some((pages, moment)) = profile.pages() {
        pages.access_table(data as u32, at, what, is_unmapping, moment);
    }
}

pub extern "C" fn begun(_: c_uint, data: *mut c_void) {
    let profile = profile();
    let is_unmapping = profile.is_within(UNMAPS);
    let mut flags = data as u32;
    // The table of swap is also written when places are allocated.
    if flags & ENTERS != 0 && !profile.is_within(FILLS) {
        flags &= !PREPARES;
    }
    if let Some((pages, moment)) = profile.pages() {
        pages.begun(flags, is_unmapping, moment);
    }
}

pub extern "C" fn fetched(_: c_uint, data: *mut c_void) {
    if let Some((pages, moment)) = profile().pages() {
        pages.execute(data as u64, moment);
    }
}

pub extern "C" fn marked(_: c_uint, which: *mut c_void) {
    if which.is_null() {
        profile().begin();
    } else {
        profile().end();
    }
}
