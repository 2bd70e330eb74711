//! The guest's `/init`. The library does everything: see [`pagetide_guest::init`].

fn main() {
    pagetide_guest::main();
}
