#ifndef PLANEWISE_CLIENTS_CLI_CAPABILITIES_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_CAPABILITIES_COMMAND_H_
// planewise capabilities: what a daemon is and can do.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddCapabilitiesCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_CAPABILITIES_COMMAND_H_
