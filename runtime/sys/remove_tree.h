// Removes a directory tree that a hostile process made.
#pragma once

#include <functional>
#include <string>

namespace pyplaypen::sys {

// Empties the directory `dirfd`; the directory itself stays. Never follows a link, needs three
// descriptors whatever the depth (a directory found deeper is first moved up to `dirfd`), and opens
// up modes that bar its own user. Nothing may be writing into the tree any more. `pause`, where
// given, is called after every few hundred entries and stops the work when it returns true.
// Returns true when the directory is empty; false when paused, or when something could not be
// removed (another user's files in a tree that we do not own, a mount point).
bool empty_directory(int dirfd, const std::function<bool()>& pause = {});

// Looks, and changes nothing but the descriptor's offset. False also when it cannot be read.
bool is_empty_directory(int dirfd);

// empty_directory, then rmdir, of `name` in `parent` (AT_FDCWD and a path do, too). A `name` that is
// not a directory is unlinked; one that is not there counts as removed.
bool remove_tree(int parent, const std::string& name, const std::function<bool()>& pause = {});

}  // namespace pyplaypen::sys
