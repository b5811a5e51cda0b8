// What a root has that lets it run calls as other users, end them, and clean up after them.
#pragma once

#include <string>

namespace pyplaypen::policy {

// Effective UID 0 with CAP_SETUID and CAP_SETGID: what it starts can be another user.
bool can_become_others();

// Of what else it then needs (CAP_CHOWN for directories and pipes, CAP_DAC_OVERRIDE and CAP_FOWNER for
// what calls leave in them, CAP_KILL for their processes), what this process lacks: names with commas,
// empty for none.
std::string missing_rights_over_others();

}  // namespace pyplaypen::policy
