-- Updates of the indexed column.

require("oltp_common")

function prepare_statements() prepare_index_updates() end

function event() execute_index_updates() end
