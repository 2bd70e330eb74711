//! W-TinyLFU: a window for new pages, and a segmented main part that admits pages by frequency of use.

use super::{About, Parameter, Policy, Setup};
use crate::flat;
use crate::lists::Lists;
use crate::number::{at, part};
use crate::queue::Position;

pub(super) static ABOUT: About = About {
    name: "w-tinylfu",
    summary: "New pages pass an LRU window; at its end the more frequent of newcomer and victim stays.",
    source: "Einziger, Friedman, Manes, \"TinyLFU: a highly efficient cache admission policy\", ACM TOS 13(4), 2017. Frequencies are counted exactly, up to 15, not sketched; they are halved every 10 × memory increments.",
    parameters: &[
        Parameter {
            name: "window",
            help: "size of the window, share of memory",
            default: 0.01,
            least: 0.0,
            most: 1.0,
        },
        Parameter {
            name: "protected",
            help: "size of the protected segment, share of the main part",
            default: 0.8,
            least: 0.0,
            most: 1.0,
        },
    ],
    make: |setup| Box::new(WTinyLfu::new(setup)),
};

const WINDOW: u32 = 1;
const PROBATION: u32 = 2;
const PROTECTED: u32 = 3;
const MAX_USES: u8 = 15;

struct WTinyLfu {
    lists: Lists<3>,
    uses: Vec<u8>,
    window_size: u32,
    main_size: u32,
    protected_size: u32,
    counted: u64,
    period: u64,
}

impl WTinyLfu {
    fn new(setup: Setup<'_>) -> Self {
        let window = part(setup.size, setup.value(0), 1, setup.size);
        let main = setup.size - window;
        Self {
            lists: Lists::new(setup.pages, setup.size.saturating_add(1)),
            uses: flat::zeroed(at(setup.pages)),
            window_size: window,
            main_size: main,
            protected_size: part(main, setup.value(1), 0, main),
            counted: 0,
            period: 10 * u64::from(setup.size),
        }
    }

    fn count(&mut self, page: u32) {
        let uses = &mut self.uses[at(page)];
        if *uses == MAX_USES {
            return;
        }
        *uses += 1;
        self.counted += 1;
        if self.counted == self.period {
            self.uses.iter_mut().for_each(|uses| *uses >>= 1);
            self.counted /= 2;
        }
    }

    /// Moves the window's oldest page to the main part if that part has room. If not, compares the page with the victim
    /// of the main part, and evicts the one that was used less often, or the page if both are equal.
    fn leave_window(&mut self) {
        let lists = &mut self.lists;
        let Some(page) = lists.oldest(WINDOW) else {
            return;
        };
        if lists.len(PROBATION) + lists.len(PROTECTED) >= self.main_size {
            let from = if lists.len(PROBATION) > 0 {
                PROBATION
            } else {
                PROTECTED
            };
            let victim = lists.oldest(from);
            if victim.is_none_or(|victim| self.uses[at(page)] <= self.uses[at(victim)]) {
                lists.forget(WINDOW);
                return;
            }
            lists.forget(from);
        }
        lists.renew(PROBATION, page, lists.place(page));
    }

    /// Moves a used page to the protected segment. If that segment is then too long, its oldest page moves back to
    /// probation.
    fn protect(&mut self, page: u32, place: Position) {
        let lists = &mut self.lists;
        lists.renew(PROTECTED, page, place);
        if lists.len(PROTECTED) > self.protected_size
            && let Some(oldest) = lists.oldest(PROTECTED)
        {
            lists.renew(PROBATION, oldest, lists.place(oldest));
        }
    }
}

impl Policy for WTinyLfu {
    #[inline]
    fn touch(&mut self, page: u32) -> bool {
        self.count(page);
        let place = self.lists.place(page);
        match place.list() {
            PROBATION => self.protect(page, place),
            0 => {
                self.lists.append(WINDOW, page);
                if self.lists.len(WINDOW) > self.window_size {
                    self.leave_window();
                }
                return false;
            }
            // Pages of the window and the protected segment stay in their lists.
            list => self.lists.renew(list, page, place),
        }
        true
    }

    fn held(&mut self, page: u32) -> bool {
        self.lists.place(page).list() != 0
    }

    #[inline]
    fn prefetch(&self, page: u32) {
        self.lists.prefetch(page);
        flat::prefetch(&self.uses, page);
    }

    #[inline]
    fn prefetch_next(&self, page: u32) {
        self.lists.prefetch_next(page);
    }
}
