#ifndef PLANEWISE_CLIENTS_CLI_SWITCH_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_SWITCH_COMMAND_H_
// planewise switch: switches a model to another mode.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddSwitchCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_SWITCH_COMMAND_H_
