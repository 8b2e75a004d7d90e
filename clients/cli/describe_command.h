#ifndef PLANEWISE_CLIENTS_CLI_DESCRIBE_COMMAND_H_
#define PLANEWISE_CLIENTS_CLI_DESCRIBE_COMMAND_H_
// planewise describe: a hosted model, its plan beside what is allocated.

#include "clients/cli/verb.h"

namespace planewise {

Verb AddDescribeCommand(CLI::App& root, CommonFlags& common);

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_DESCRIBE_COMMAND_H_
