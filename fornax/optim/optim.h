// Everything of fornax::optim.
#pragma once

#include "fornax/optim/lr_scheduler.h"
#include "fornax/optim/optimizers.h"
