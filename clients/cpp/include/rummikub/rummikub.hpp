// All of the client.
#pragma once

#include "rummikub/client.hpp"
#include "rummikub/error.hpp"
#include "rummikub/tiles.hpp"
#include "rummikub/turns.hpp"
#include "rummikub/watch.hpp"
