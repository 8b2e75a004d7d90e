#ifndef PLANEWISE_CLIENTS_C_C_CLIENT_H_
#define PLANEWISE_CLIENTS_C_C_CLIENT_H_
// What planewise_client* points to. Its sessions have a share of the client, so that
// callers may free them in any order: those with a garbage collector cannot choose one.

#include <memory>

#include "clients/c/planewise.h"
#include "clients/cpp/client.h"

struct planewise_client {
  std::shared_ptr<planewise::Client> client;
};

#endif  // PLANEWISE_CLIENTS_C_C_CLIENT_H_
