from hlo_replay import main

main()
