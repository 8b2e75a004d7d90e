#ifndef PLANEWISE_CLIENTS_CLI_VERIFY_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_VERIFY_COMMAND_H_
// planewise verify: are the bytes the ones that were written? Asks a
// daemon, or reads a store that no daemon has open.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddVerifyCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_VERIFY_COMMAND_H_
