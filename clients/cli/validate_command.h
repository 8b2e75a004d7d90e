#ifndef PLANEWISE_CLIENTS_CLI_VALIDATE_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_VALIDATE_COMMAND_H_
// planewise validate: what a switch to another mode would need.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddValidateCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_VALIDATE_COMMAND_H_
