//! The guest's `/init`. Everything is done by the library: see [`pagetide_guest::init`].

fn main() {
    pagetide_guest::main();
}
