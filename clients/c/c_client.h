#ifndef PLANEWISE_CLIENTS_C_C_CLIENT_H_
#define PLANEWISE_CLIENTS_C_C_CLIENT_H_
// What planewise_client* points to.

#include <memory>

#include "clients/c/planewise.h"
#include "clients/cpp/client.h"

struct planewise_client {
  std::unique_ptr<planewise::Client> client;
};

#endif  // PLANEWISE_CLIENTS_C_C_CLIENT_H_
