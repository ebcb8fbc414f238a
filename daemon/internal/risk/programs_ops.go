package risk

// programsPackages are package managers. Installing runs code of strangers: with the project's lock file it is everyday
// development, by name it is high. How to add a line: table.go.
const programsPackages = `
npm,pnpm,yarn,bun,cnpm : high run-code args=text --prefix,-C,--dir,--cwd,-w,--workspace,--filter,-F,--registry,--userconfig,--cache,
	--script-shell=val --script-shell!high,run-code="decides which shell runs scripts" sub ; manages packages
npm,pnpm,yarn,bun test,t,tst,run,run-script,start,stop,restart,ci,install-test,it,build,dev,lint,format,typecheck,rebuild,prune,dedupe,
	workspaces,workspace,check,coverage : medium run-code args=text ; runs the project's scripts
npm,pnpm,yarn,bun ls,list,ll,la,view,info,show,v,outdated,explain,why,root,bin,prefix,help,help-search,search,s,find,ping,whoami,fund,query,
	doctor,licenses,version,-v,diff : low read args=text --json,--depth=val ; asks about packages
npm,pnpm,yarn,bun view,info,show,v,outdated,search,s,find,ping,whoami,fund,diff : medium network args=text ; asks the registry about
	packages
npm,pnpm,yarn,bun install,i,add,in,ins,isntall : medium run-code do=pip --registry,--prefix,--save-prefix,--tag=val -g,--global,
	--location!high,run-code="installs for every project" ; installs packages, whose scripts run
npm,pnpm,yarn,bun update,up,upgrade,remove,rm,uninstall,un,unlink,link,import,init,pack,patch,set-script,pkg,shrinkwrap,autoclean : medium
	write args=text -g,--global!high,write="changes programs for every project" ; changes the project's packages
npm,pnpm,yarn,bun audit : medium network args=text ; checks packages for known faults
npm,pnpm,yarn,bun exec,x,dlx,create,execute : high run-code do=npx args=text -c,--call,-p,--package=val ; fetches a package and runs its
	code
npm,pnpm,yarn,bun publish,unpublish,deprecate,dist-tag,owner,access,team,org,star,unstar,hook : critical network args=text hard ; publishes,
	or changes what was published
npm,pnpm,yarn,bun login,logout,adduser,token,profile : high secret args=text ; works with your account
npm,pnpm,yarn,bun config,c,get : medium secret do=printenv args=text ; shows settings, with the tokens among them
npm,pnpm,yarn,bun config,c set,delete,edit,rm,unset : high persistence args=text ; changes settings, which can run programs
npm,pnpm,yarn,bun cache,store : medium write args=text ; manages the cache
npx,bunx,pnpx,uvx : high run-code do=npx -c,--call,-p,--package,--from,--with,--python=val ; fetches a package and runs its code
nvm,fnm,volta,n,asdf,mise,rtx,pyenv,rbenv,nodenv,jenv,sdk,goenv,tfenv,corepack,proto : high run-code args=text sub ; manages versions of
	languages
nvm,fnm,volta,n,asdf,mise,rtx,pyenv,rbenv,nodenv,jenv,sdk,goenv,tfenv,proto ls,list,current,version,versions,which,ls-remote,list-remote,
	where,root,commands,help,doctor,env,whence : low read args=text ; lists versions
nvm,fnm,volta,asdf,mise,rtx,pyenv,rbenv,nodenv,jenv,sdk,goenv,tfenv use,local,shell,pin : medium shell-state args=text ; switches the
	version
mise,rtx,asdf,pyenv,rbenv exec,x : medium run-code args=run ; runs a command with a version
pip,pip3,pip2,pipx,uv,poetry,pdm,pipenv,rye,hatch,conda,mamba,micromamba,flit,twine : high run-code args=text -p,--python,--project,
	--directory,-C,--proxy,--cache-dir,--log,-n,--name,--prefix=val sub ; manages packages
pip,pip3,pip2,pipx,uv,poetry,pdm,pipenv,rye,conda,mamba,micromamba list,show,freeze,check,search,info,help,version,graph,tree,env,about,
	index,hash,inspect,debug,doctor : low read args=text ; asks about packages
pip,pip3,pip2 list,show,freeze,check,search,help,index,hash,inspect,debug : low read do=pipask args=text --python=val ; asks about packages
pip,pip3,pip2 download,wheel : medium network do=pip -r,--requirement,-c,--constraint,-i,--index-url,--extra-index-url,-f,--find-links,-t,
	--target,--prefix,--root,-d,--dest,-e,--editable,--platform,--python-version,-w=val ; fetches packages
pip,pip3,pip2 install : medium run-code do=pip -r,--requirement,-c,--constraint=read -i,--index-url,--extra-index-url,-f,--find-links,-t,
	--target,--prefix,--root,-e,--editable,--platform,--python-version,--trusted-host,--upgrade-strategy,--no-binary,--only-binary=val ;
	installs packages, whose code runs
pip,pip3,pip2 uninstall,cache,config : medium write args=text ; removes packages or changes settings
pip,pip3,pip2 config set,edit,unset : high persistence args=text ; changes settings, which decide where packages come from
pip,pip3,pip2 config list,get,debug : medium secret args=text ; shows settings, which can hold passwords
pipx,uv,poetry,pdm,pipenv,rye,hatch install,sync,add,remove,lock,update,init,new,build,venv,export,pip,dev,test,fmt,lint,uninstall,upgrade,
	dep,self,cache,python,tool,shell : medium run-code do=pip -p,--python,--group,-G,--extra,--source,--index-url,--with,-r,--requirement=val ;
	installs or changes the project's packages
uv pip : medium run-code args=text ; manages packages
uv pip list,show,freeze,check,tree : low read args=text ; asks about packages
uv pip install,uninstall,sync,compile : medium run-code do=pip -r,--requirement,-c,--constraint,--index-url,--extra-index-url,-e,
	--editable=val ; installs packages, whose code runs
uv,poetry,pdm,pipenv,rye,hatch,conda,mamba,micromamba run : medium run-code args=run -p,--python,--with,--extra,--group,--env-file,-n,
	--name,-m,--module,--project,--directory=val ; runs a command among the project's packages
pipx run : high run-code do=npx args=text --spec,--python=val ; fetches a package and runs its code
uv tool,publish : high run-code args=text ; installs, runs or publishes programs
poetry,pdm,hatch,flit,twine publish,upload,config : critical network args=text hard ; publishes a package
conda,mamba,micromamba install,create,update,remove,env,activate,deactivate,init,clean : high run-code args=text -n,--name,-c,--channel,-f,
	--file,-p,--prefix=val ; changes environments
gem : high run-code args=text sub ; manages packages
gem list,search,info,contents,dependency,environment,env,help,specification,which,outdated : low read args=text ; asks about packages
gem push,yank,owner,signin : critical network args=text hard ; publishes a package
bundle,bundler : medium run-code args=text ; manages the project's packages
bundle,bundler exec : medium run-code args=run ; runs a command among the project's packages
bundle,bundler list,show,info,outdated,check,version,help,platform,viz,doctor,licenses : low read args=text ; asks about packages
composer : medium run-code args=text -d,--working-dir=val ; manages the project's packages
composer show,info,outdated,validate,licenses,why,depends,why-not,prohibits,search,status,about,help,diagnose,fund : low read args=text ;
	asks about packages
composer global,exec,create-project,run-script,self-update : high run-code args=text ; installs or runs code
luarocks,opam,cpan,cpanm,cpm,raco,pub,nuget,paket,carthage,hex,nix-env,guix,spack,brew,port,fink,choco,scoop,winget,snap,flatpak,
	appimage,apk,dnf,yum,zypper,emerge,xbps-install,eopkg,swupd,pkg,pkg_add,pkgin,apt,apt-get,aptitude,dpkg-reconfigure,
	add-apt-repository,apt-key,apt-mark,debconf-set-selections,update-alternatives,alternatives,tdnf,microdnf,rpm-ostree,transactional-update,
	nala,alien,checkinstall : high privilege args=text -o,-c,-t,--config-file,-q,-f,-p,-s,--showformat,-W,--installroot,--root=val -Syu,-S,-R,
	-U!high,write="installs or removes programs" ; installs or removes programs of this machine
brew,port,snap,flatpak,apk,dnf,yum,zypper,apt,apt-get,aptitude,choco,scoop,winget,guix,pkg,opam,luarocks,nuget,nala list,search,info,show,
	policy,depends,rdepends,provides,repolist,history,leaves,deps,uses,config,doctor,outdated,versions,desc,home,cat,ls,view,find,changelog,
	--prefix,--version,check-update,shellenv,madison,stats,moo,sources,repos,help : low read args=text ; asks about packages
apt,apt-get,dnf,yum,apk,nala update,makecache : high privilege args=text ; fetches lists of packages
apt-cache,apt-file,apt-show-versions,dpkg-query,rpmquery,repoquery,equery,qlist,xbps-query,pkg_info,dpkg-deb,debsums,deborphan : low read
	args=text -W,-f,-S,-L,-s,-l,--showformat=val -x,-X,-e,-R!medium,write="unpacks a package" ; asks about packages
rpm : high privilege args=text -q,-qa,-qi,-ql,-qf,-qp,-V,--query,--verify,--version? -U,-i,-e!high,write="installs or removes programs" ; installs or
	removes programs of this machine
pacman,yay,paru : high privilege args=text -Q,-Qi,-Ql,-Qs,-Qo,-Qe,-Qm,-Qu,-Ss,-Si,-F,--query? ; installs or removes programs of this machine
dpkg : high privilege args=text -l,--list,-L,--listfiles,-s,--status,-S,--search,--get-selections,-p,--print-avail,--print-architecture,-I,
	-c,--info,--contents? --root,--admindir=val ; installs or removes programs of this machine
`

// programsContainers are containers and clusters.
const programsContainers = `
docker,podman,nerdctl : high run-code args=text -H,--host,-c,--context,--config,-l,--log-level=val sub ; works with containers
docker,podman,nerdctl ps,images,logs,inspect,version,info,top,port,stats,history,diff,search,events,help,wait : low read args=text -f,
	--filter,--format,-n,--last,--since,--until,--tail,-t=val ; looks at containers
docker,podman,nerdctl search : medium network args=text ; asks a registry
docker,podman,nerdctl run,create : high run-code do=docker -v,--volume,--mount,-e,--env,--env-file,-p,--publish,--name,-w,--workdir,-u,
	--user,--network,--net,--entrypoint,--hostname,-h,--cpus,-m,--memory,--label,-l,--platform,--pid,--ipc,--uts,--userns,--cap-add,--cap-drop,
	--device,--security-opt,--restart,--gpus,--add-host,--dns,--tmpfs,--ulimit,--shm-size,--pull,--log-driver,--volumes-from,--link,--expose,
	--cidfile,--stop-signal,--health-cmd,-a,--attach,--group-add,--runtime,--ip=val ; runs a container
docker,podman,nerdctl exec : high run-code do=remote args=run skip=1 -e,--env,--env-file,-w,--workdir,-u,--user,--detach-keys=val
	--privileged!critical,privilege="with the rights of the whole machine" ; runs a command in a container
docker,podman,nerdctl build,buildx : medium run-code args=text -t,--tag,-f,--file,--build-arg,--target,--platform,--label,--cache-from,
	--cache-to,--network,--secret,--ssh,--iidfile,--progress,--builder=val -o,--output=write --push!high,network="publishes the image" ; builds
	an image, which runs its build file
docker,podman,nerdctl pull : medium network args=text --platform=val ; fetches an image
docker,podman,nerdctl push : high network args=text ; publishes an image
docker,podman,nerdctl start,stop,restart,kill,pause,unpause,update,rename,attach,tag,commit,import,load,save,export : high write args=text
	-o,--output=write -i,--input=read -t,-s,--time,--signal=val ; changes containers or images
docker,podman,nerdctl rm,rmi : high delete args=text hard ; deletes containers or images
docker,podman,nerdctl cp : high write args=text ; copies files from or into a container
docker,podman,nerdctl login,logout : high secret args=text -u,-p,--username,--password=val ; works with a registry's password
docker,podman container,image,volume,network,system,context,builder,manifest,plugin,secret,config,node,service,stack,swarm,trust,checkpoint,
	machine,pod,play,generate,kube,scout : high write args=text sub ; changes docker's things
docker,podman container,image,volume,network,system,context,builder,manifest,plugin,secret,config,node,service,stack,machine,pod ls,list,
	inspect,ps,df,info,logs,history,top,stats,port,diff,show,events,exists : low read args=text -f,--filter,--format=val ; looks at docker's
	things
docker,podman container,image,volume,network,builder,pod,node,service,stack,secret,config,context,machine,plugin rm,remove : high delete
	args=text hard ; deletes docker's things
docker,podman volume,system rm,prune,reset : critical delete args=text hard --filter=val ; deletes volumes and the data in them
docker,podman container,image,network,builder prune : high delete args=text --filter=val hard ; deletes what docker does not use
docker,podman container run,create : high run-code do=docker -v,--volume,--mount,-e,--env,-p,--name,-w,-u,--network,--entrypoint,--cap-add,
	--device,--security-opt=val ; runs a container
docker,podman container exec : high run-code do=remote args=run skip=1 -e,--env,-w,-u=val ; runs a command in a container
docker,podman,nerdctl compose : high run-code args=text -f,--file,-p,--project-name,--profile,--env-file,--project-directory=val ; works
	with the project's containers
docker-compose,podman-compose : high run-code args=text -f,--file,-p,--project-name,--profile,--env-file,--project-directory=val ; works
	with the project's containers
docker,podman,nerdctl compose ps,logs,config,images,top,ls,version,port,events,stats : low read args=text --tail,--since,-n=val ; looks at
	the project's containers
docker-compose,podman-compose ps,logs,config,images,top,ls,version,port,events : low read args=text --tail,--since,-n=val ; looks at the
	project's containers
docker,podman,nerdctl compose config : medium secret args=text -q,--services,--volumes,--images,--profiles? ; shows the settings, with the secrets put in
docker,podman,nerdctl compose up,start,stop,restart,build,pull,create,pause,unpause,watch : medium run-code args=text --scale,-t,
	--timeout=val ; starts or stops the project's containers
docker-compose,podman-compose up,start,stop,restart,build,pull,create,pause,unpause : medium run-code args=text --scale,-t,--timeout=val ;
	starts or stops the project's containers
docker,podman,nerdctl compose down,rm,kill : medium signal args=text -v,--volumes!critical,delete="deletes volumes and the data in them"
	--rmi!high,delete="deletes images" -t,--timeout=val ; ends the project's containers
docker-compose,podman-compose down,rm,kill : medium signal args=text -v,--volumes!critical,delete="deletes volumes and the data in them"
	--rmi!high,delete="deletes images" -t,--timeout=val ; ends the project's containers
docker,podman,nerdctl compose exec,run : high run-code do=remote args=run skip=1 -e,--env,-w,--workdir,-u,--user,-p,-v,--name,
	--entrypoint=val ; runs a command in a container
docker-compose,podman-compose exec,run : high run-code do=remote args=run skip=1 -e,--env,-w,--workdir,-u,--user,-p,-v,--name,
	--entrypoint=val ; runs a command in a container
buildah,skopeo,crane,kaniko,img,ctr,crictl,lxc,lxd,incus,runc,crun,dive,trivy,grype,syft,cosign,lima,limactl,colima,minikube,kind,k3d,k3s,
	microk8s,multipass,vagrant,packer,virsh,qemu-img,vboxmanage,VBoxManage,qemu-system-x86_64,machinectl,systemd-nspawn,distrobox,toolbox,
	devcontainer,earthly,dagger,act,skaffold,tilt,devspace,okteto,telepresence,garden,werf,nomad,apptainer,singularity : high run-code
	args=text ; works with containers, images or machines
vagrant status,global-status,version,port,validate : low read args=text ; looks at machines
minikube,kind,k3d,colima,limactl status,list,get,version,profile,ip,ls : low read args=text ; looks at machines
kubectl,oc,k,kubecolor : high network args=text -n,--namespace,--context,--cluster,--kubeconfig,-s,--server,--as,--token,--user,-l,
	--selector,-o,--output,-f,--filename,--field-selector,--sort-by,-c,--container,--since,--tail,--timeout,--request-timeout,-L,--template,
	--type,-p,--patch,--image,--replicas,-k,--for=val sub ; works on a cluster
kubectl,oc,k,kubecolor get,describe,logs,top,explain,api-resources,api-versions,version,cluster-info,events,wait,options,help,diff,
	kustomize,completion,status,whoami,projects : low read args=text -f,--filename=val ; looks at a cluster
kubectl,oc,k,kubecolor get secret,secrets : high secret args=text ; shows secrets of a cluster
kubectl,oc,k,kubecolor config : high write args=text ; changes which cluster is used
kubectl,oc,k,kubecolor config view,get-contexts,current-context,get-clusters,get-users : low read args=text --raw!high,secret="shows keys" ;
	shows which cluster is used
kubectl,oc,k,kubecolor auth : low read args=text ; asks what you may do
kubectl,oc,k,kubecolor rollout : high network args=text ; changes a cluster
kubectl,oc,k,kubecolor rollout status,history : low read args=text ; looks at a cluster
kubectl,oc,k,kubecolor apply,create,patch,edit,scale,set,label,annotate,autoscale,expose,run,replace,taint,cordon,uncordon,port-forward,
	proxy,cp,attach,debug,certificate,plugin : high network args=text --dry-run? --overwrite,--force!high,network="by force" ; changes a
	cluster
kubectl,oc,k,kubecolor delete,drain : critical delete args=text --dry-run? hard ; deletes things of a cluster
kubectl,oc,k,kubecolor exec,rsh : high run-code do=remote args=run skip=1 -c,--container,-n,--namespace=val ; runs a command in a cluster
helm,helmfile,kustomize,flux,argocd,istioctl,linkerd,cilium,velero,kubeadm,eksctl,kops,rancher,kubeseal,crossplane,tkn,knative,kn : high
	network args=text -n,--namespace,--kube-context,--kubeconfig,-f,--values,--set,--version=val sub ; works on a cluster
helm list,ls,status,get,history,show,search,version,env,template,lint,verify,dependency,help : low read args=text --post-renderer=code ;
	looks at charts
helm repo : medium network args=text ; manages charts
helm install,upgrade,rollback,push,pull,package,create,plugin,registry,test : high network args=text --dry-run? --post-renderer=code ;
	changes a cluster
helm uninstall,delete,un : critical delete args=text --dry-run? hard ; deletes things of a cluster
kubectx,kubens,k9s,stern : medium network args=text ; looks at a cluster
argocd,flux,velero,istioctl,eksctl,kops get,list,logs,version,check,describe,analyze,proxy-status,validate,diff : low read args=text ; looks
	at a cluster
argocd,flux,velero,eksctl,kops delete,uninstall : critical delete args=text hard ; deletes things of a cluster
`

// programsCloud are clouds, infrastructure and databases.
const programsCloud = `
terraform,tofu,terragrunt,cdktf : high network args=text long -chdir,-var,-var-file,-target,-out,-state,-backend-config,-lock,-lock-timeout,
	-parallelism,-refresh,-replace=val sub ; changes infrastructure
terraform,tofu,terragrunt,cdktf version,fmt,validate,show,output,graph,providers,workspace,console,get,metadata,test,help,init,plan,refresh
	: medium network args=text long -chdir,-var,-var-file,-target,-out,-backend-config=val ; looks at infrastructure
terraform,tofu fmt : medium write args=text long -check? -chdir=val ; rewrites the files
terraform,tofu,terragrunt version,validate,show,graph,help : low read args=text long -chdir=val ; looks at infrastructure
terraform,tofu,terragrunt,cdktf apply,destroy,import,taint,untaint,force-unlock,deploy,run-all : critical network args=text long -chdir,
	-var,-var-file,-target,-out=val hard ; changes real infrastructure
terraform,tofu,terragrunt state : critical network args=text long hard ; changes what is known of the infrastructure
terraform,tofu,terragrunt state list,show,pull : medium network args=text long ; looks at infrastructure
terraform,tofu,terragrunt login,logout : high secret args=text ; works with your token
pulumi,cdk,sam,sst,amplify,copilot,eb,ecs-cli,heroku,fly,flyctl,railway,render,vercel,netlify,now,surge,wrangler,firebase,supabase,doctl,
	linode-cli,hcloud,scw,exo,oci,ibmcloud,aliyun,tccli,openstack,nova,civo,vultr-cli,up,cf,dokku,kamal,cap,capistrano,mina,fab,ansible,
	ansible-playbook,ansible-galaxy,ansible-vault,ansible-pull,salt,salt-call,puppet,chef-client,knife,bolt,pyinfra,mitogen,nixos-rebuild,
	home-manager,darwin-rebuild,colmena,deploy,nixops,chezmoi,stow,yadm,dotbot : high network args=text -i,--inventory,-m,-a,-e,--extra-vars,
	-u,-l,--limit,-t,--tags,-s,--stack,-p,--project,-C,-f=val --prod!high,network="to production" ; changes machines, sites or infrastructure
heroku,fly,flyctl,vercel,netlify,railway,firebase,supabase,doctl,hcloud,pulumi,cdk status,list,ls,logs,info,apps,ps,releases,whoami,version,
	help,diff,stack,preview,history,inspect : medium network args=text -a,--app=val ; asks a cloud
heroku,fly,flyctl,doctl,hcloud,pulumi,cdk,vercel,railway,netlify,supabase destroy,delete,rm,remove : critical delete args=text hard ;
	deletes what runs in a cloud
vercel,netlify,wrangler,firebase,supabase dev,build,serve,emulators,test : medium run-code args=text ; builds or serves the project
ansible-vault,chezmoi view,decrypt,edit,create,encrypt : high secret args=text ; works with secrets
chezmoi,stow,yadm status,diff,managed,list,doctor : low read args=text ; looks at settings
nix,nix-shell,nix-build,nix-store,nix-instantiate,nix-channel,nix-collect-garbage : high run-code args=text --run,--command=shell -p,
	--packages,-A,-I,-E,-f=val ; builds or runs packages
nix develop,build,flake,profile,search,eval,repl,fmt,log,show-config,path-info,why-depends,store : medium run-code args=text -c,
	--command=shell ; builds or runs packages
nix run,shell : high run-code args=text -c,--command=shell ; fetches packages and runs them
aws : high network do=cloud args=text --profile,--region,--output,--query,--endpoint-url,--filters,--cli-input-json,--page-size,--max-items,
	--instance-ids,--bucket,--key,--function-name,--name,--stack-name,--cluster,--service,--payload,--cli-binary-format=val ; works in a cloud
aws s3,ec2,ecs,eks,lambda,iam,sts,rds,cloudformation,logs,cloudwatch,dynamodb,route53,sns,sqs,ssm,secretsmanager,ecr,elbv2,elb,autoscaling,
	kms,acm,apigateway,cloudfront,athena,glue,stepfunctions,events,s3api,configure,sso,organizations,ce,batch,emr,redshift,kinesis,firehose,
	elasticache,opensearch,codebuild,codepipeline,cognito-idp,waf,wafv2,guardduty,config,backup,budgets,pricing,support,efs,fsx,sagemaker,
	bedrock,apprunner,lightsail : high network do=cloud args=text --profile,--region,--output,--query,--include,--exclude=val ; works in a cloud
aws s3 ls,presign : medium network args=text --profile,--region=val ; looks into a cloud
aws s3 cp,sync,mv,mb,website : high network args=text --profile,--region,--include,--exclude=val --delete!critical,
	delete="deletes what is not in the source" --acl!high,network="may make it public" --dryrun? ; copies files from or to a cloud
aws s3 rm,rb : critical delete args=text --dryrun? hard ; deletes files in a cloud
aws sts get-caller-identity : medium network args=text ; asks who you are
aws configure list,list-profiles : low read args=text ; shows settings
gcloud,gsutil,bq,az,azcopy,yc,s3cmd,mc,rclone,b2cli,fastly,cloudflared,ngrok,tailscale,zerotier-cli,wg,wg-quick,openvpn,nmcli,networkctl,
	localtunnel,lt,bore,frpc,chisel : high network args=text --project,--region,--zone,--format,--filter,--config,-g,-n,-o,--output,--query,
	--subscription=val ; works in a cloud or a network
gcloud auth,config,compute,container,projects,services,iam,run,functions,app,sql,storage,logging,builds,artifacts,secrets,kms,dns,pubsub,
	info,version : high network do=cloud args=text --project,--region,--zone,--format,--filter=val ; works in a cloud
gcloud info,version : low read args=text ; asks gcloud about itself
gcloud config,auth,projects,compute,container,run,services,sql list,describe,get-value : medium network args=text --project,--region,--zone,
	--format,--filter=val ; asks a cloud
az version : low read args=text ; asks az about itself
az account,vm,group,aks,webapp,storage,network,resource,functionapp,acr,sql,keyvault,monitor,login,logout,rest : high network
	do=cloud args=text -g,-n,-o,--output,--query,--subscription=val ; works in a cloud
az account,vm,group,aks,webapp,network,resource,functionapp,acr,sql,monitor list,show : medium network args=text -g,-n,-o,--output,--query,
	--subscription=val ; asks a cloud
gsutil ls,du,stat,cat,version : medium network args=text ; looks into a cloud
gsutil rm,rb : critical delete args=text hard ; deletes files in a cloud
rclone ls,lsl,lsd,lsf,size,about,version,listremotes,check,cat : medium network args=text --config=val ; looks into a cloud
rclone delete,purge,sync,deletefile,rmdirs : critical delete args=text --config=val --dry-run,-n? hard ; deletes files in a cloud
tailscale,nmcli,networkctl,wg status,ip,list,show,netcheck,version,general,device,connection : low read args=text -f,-t,-g=val ; looks at
	networks
nmcli device,connection show,status,wifi : low read args=text ; looks at networks
nmcli device,connection add,modify,delete,up,down,edit,import,connect,disconnect : high write args=text ; changes networks
psql,pgcli : high unknown do=sql -c,--command,-f,--file,-o,--output,-L,--log-file,-h,--host,-p,--port,-U,--username,-d,--dbname,-P,-F,-R,-T,
	-v,--set,--variable=val ; works on a database
mysql,mariadb,mycli : high unknown do=sql -e,--execute,-h,--host,-P,--port,-u,--user,-D,--database,-S,--socket,--init-command,--tee=val ;
	works on a database
sqlite3,litecli,duckdb : high unknown do=sql -cmd,-init,-c,-s,-separator,-nullvalue,-newline=val ; works on a database
redis-cli,valkey-cli : high unknown do=sql -h,-p,-a,-n,-u,-i,-r,-s,--user,--pass=val ; works on a database
mongosh,mongo,sqlcmd,clickhouse-client,cqlsh,influx,cockroach,usql,cypher-shell,snowsql,trino,presto,hive,beeline,impala-shell,isql,db2,
	surreal : high unknown do=sql -e,--execute,--eval,-q,-Q,--query,-c,--command,-f,--file,-i,-o,--output,-h,--host,-p,--port,-u,-U,--user,
	--username,-d,-D,--database=val ; works on a database
pg_dump,pg_dumpall,mysqldump,mongodump,mongoexport,redis-dump : high read args=text -f,--file,-o,--out,-r,--result-file=write -h,-U,-p,-d,
	-t,-n,-F,-u=val ; copies a database
pg_restore,mongorestore,mongoimport,mysqlimport,createdb,createuser,pg_ctl,initdb,vacuumdb,reindexdb,pg_upgrade,mysqladmin,mysqlcheck,
	mysqld,postgres,mongod,redis-server,pg_ctlcluster,pg_createcluster : high write args=text ; changes or starts a database
mysqladmin drop : critical delete args=text hard ; deletes a database
dropdb,dropuser,pg_dropcluster : critical delete args=text hard ; deletes a database
pg_isready,pg_config,pg_lsclusters : low read args=text -h,-p,-U,-d,-t=val ; asks whether a database is there
kafka-topics,kafka-console-consumer,kafka-console-producer,kafkacat,kcat,rabbitmqctl,rabbitmqadmin,nats,mosquitto_pub,mosquitto_sub,etcdctl,
	consul,zkCli.sh,memcstat : high network args=text --delete!critical,delete="deletes what a service holds" ; works on a service
rabbitmqctl reset,force_reset,delete_vhost,delete_queue,purge_queue : critical delete args=text hard ; deletes what a service holds
sendmail,mail,mailx,mutt,swaks,msmtp,s-nail,neomutt : critical network args=text -e!critical,run-code="runs a command" ; sends mail
`

// programsNetwork are what talks to other machines.
const programsNetwork = `
curl,curlie,xh,http,https,httpie : medium network do=curl -A,--user-agent,-b,--cookie,-c,--cookie-jar,-C,-d,--data,--data-raw,--data-binary,
	--data-ascii,--data-urlencode,--json,-D,--dump-header,-e,--referer,-E,--cert,--key,-F,--form,--form-string,-H,--header,-K,--config,-m,
	--max-time,-o,--output,--output-dir,-P,-Q,-r,--range,-T,--upload-file,-u,--user,-U,--proxy-user,-w,--write-out,-x,--proxy,--preproxy,-X,
	--request,-y,-Y,-z,--url,--url-query,--cacert,--capath,--connect-timeout,--retry,--retry-delay,--resolve,--connect-to,--limit-rate,
	--interface,--unix-socket,--abstract-unix-socket,--socks5,--socks5-hostname,--socks4,--trace,--trace-ascii,--stderr,--oauth2-bearer,
	--netrc-file,--etag-save,--etag-compare,--libcurl,--hsts,--alt-svc,--doh-url,--max-redirs,--max-filesize,--ciphers,--pinnedpubkey,
	--local-port,--keepalive-time,-t,--proxy-header,--retry-max-time,--dns-servers,--aws-sigv4,--noproxy=val ; fetches from the network
wget,wget2 : medium network do=wget -O,--output-document,-o,-a,--output-file,--append-output,-P,--directory-prefix,--post-data,--post-file,
	--body-data,--body-file,--method,--header,-U,--user-agent,--user,--password,--http-user,--http-password,-i,--input-file,-e,--execute,
	--config,-t,--tries,-T,--timeout,-w,--wait,-Q,-l,--level,-A,-R,-D,--domains,-I,-X,-B,--base,--load-cookies,--save-cookies,--ca-certificate,
	--limit-rate,--use-askpass=val ; fetches from the network
lftp,ftp,tftp,ncftp : high network args=text -e,-c,-f,-u,-p=val ; talks to a server, in both directions
fetch,lwp-request,lwp-download,lwp-mirror,GET,HEAD : medium network args=url -o,--output=write -d,-b,--body!high,network="sends" ; fetches
	from the network
aria2c,axel,youtube-dl,yt-dlp,httrack,gallery-dl : medium network do=wget -o,--out,-O,--output,-a,-P,-d,--dir,-x,-s,-n,
	-f,--format=val -i,--input-file,--batch-file=read -e,--exec=shell ; fetches from the network
ssh,mosh,autossh,et,tsh,dbclient,slogin : high network do=ssh args=run skip=1 -b,-B,-c,-D,-E,-e,-F,-I,-i,-J,-L,-l,-m,-O,-o,-p,-Q,-R,-S,-W,
	-w,-P,-M=val ; works on another machine
scp,pscp : high network do=scp -c,-D,-F,-i,-J,-l,-o,-P,-S,-X=val ; copies files from or to another machine
sftp : high network do=scp -c,-D,-F,-i,-J,-l,-o,-P,-S,-X,-b,-B,-R,-s=val ; copies files from or to another machine
rsync,openrsync,unison : medium write do=rsync -e,--rsh,--rsync-path,--exclude,--include,-f,--filter,--files-from,--exclude-from,
	--include-from,--password-file,--log-file,--write-batch,--backup-dir,--partial-dir,-T,--temp-dir,--bwlimit,--port,--timeout,--max-size,
	--min-size,--chmod,--chown,--compare-dest,--copy-dest,--link-dest,-B,-M,--remote-option,--suffix,--info,--out-format,--compress-level,
	--skip-compress,--usermap,--groupmap,--max-delete,--modify-window,--address,--sockopts=val ; copies files
nc,ncat,netcat,socat,telnet,nmap,masscan,zmap,hping3,rustscan,nikto,sqlmap,hydra,msfconsole,msfvenom,john,hashcat,aircrack-ng,ettercap,
	bettercap,responder,tcpdump,tshark,wireshark,dumpcap,ngrep,arpspoof,mitmproxy,mitmdump,gobuster,ffuf,dirb,wfuzz,wpscan,nuclei,subfinder,
	amass,slowloris,ab,wrk,hey,siege,vegeta,iperf,iperf3,netperf,bombardier : high network args=text -w,-p,-s,-i,-q,-n,-c,-X=val -e,--exec,-c,
	--sh-exec=shell ; talks to other machines in ways that may send or attack
ping,ping6,traceroute,tracepath,mtr,dig,nslookup,host,whois,drill,kdig,delv,resolvectl,arp,arping,fping,speedtest,speedtest-cli,ipcalc,
	sipcalc : medium network args=text -c,-i,-W,-w,-t,-s,-I,-m,-q,-p,-x,-f=val ; asks other machines
ifconfig,route,iwconfig : high write args=text -a,-v,-s,-n,-e,-ee? -A=val bare ; changes networks
ip,ethtool,iw,brctl,tc,bridge,rfkill : low read args=text -f,-n,-s=val ; looks at networks
ss,netstat,nstat,lnstat,nethogs,iftop,bmon,vnstat : low read args=text -f,-A,-i=val -K,--kill!high,signal="ends connections" ; looks at
	networks
ip link,addr,address,route,rule,neigh,netns,tunnel,maddress,xfrm,a,l,r : low read args=text ; looks at networks
ip link,addr,address,route,rule,neigh,netns,tunnel,a,l,r add,del,delete,set,change,replace,flush,append : high write args=text ; changes
	networks
ip netns exec : high run-code args=run skip=1 ; runs a command in another network
iptables,ip6tables,nft,ufw,firewall-cmd,ebtables,ipset,pfctl,iptables-save,iptables-restore,fail2ban-client : high write args=text -L,-S,
	--list,--list-rules,--state,--list-all? -F,--flush,-X!critical,delete="drops all rules of the firewall" -t,-A,-D,-I,-p,-s,-d,-j,-m,--dport,
	--sport,-i,-o=val ; changes the firewall
ufw status,version,show : low read args=text ; looks at the firewall
xdg-settings,gsettings,dconf,kwriteconfig5,defaults,reg,plutil,scutil,networksetup,pmset,launchctl,spctl,csrutil,nvram,profiles,dscl,
	systemsetup,softwareupdate,diskutil,hdiutil,tmutil,codesign,xattr,mdutil : high persistence args=text ; changes settings of this machine
defaults,dconf,gsettings read,get,list,list-schemas,list-keys,dump : low read args=text ; shows settings
launchctl load,bootstrap,submit,enable,kickstart : critical persistence args=text ; makes a program run by itself
diskutil,launchctl,tmutil,hdiutil,pmset list,info,print,listbackups,status,-g : low read args=text ; shows settings
ollama,llm,aichat,claude,codex,gemini,aider,opencode,crush,goose,copilot-cli,mods,sgpt,fabric,cursor-agent,amp : high run-code args=text ;
	starts another agent or model
ollama list,ps,show,help : low read args=text ; looks at models
`

// programsSystem are what administers the machine.
const programsSystem = `
mkfs,mkfs.ext2,mkfs.ext3,mkfs.ext4,mkfs.xfs,mkfs.btrfs,mkfs.vfat,mkfs.fat,mkfs.ntfs,mkfs.exfat,mkfs.f2fs,mke2fs,mkswap,newfs,wipefs,
	blkdiscard,sgdisk,sfdisk,cfdisk,hdparm,nvme,cryptsetup,luksformat,badblocks,zpool,zfs,lvremove,vgremove,pvremove,lvcreate,vgcreate,
	pvcreate,mdadm,btrfs,tune2fs,resize2fs,xfs_growfs,e2fsck,fsck,fsck.ext4,debugfs,flashrom,efibootmgr,grub-install,update-grub,grub-mkconfig,
	dracut,mkinitcpio,update-initramfs,kexec,bootctl,fwupdmgr,sdparm,partprobe : critical write args=text hard --no-act? ; works on disks or on
	how this machine starts
fdisk,parted,gdisk : critical write args=text -l,--list? hard ; changes the partitions of a disk
zpool,zfs,btrfs list,status,get,history,iostat,filesystem,version : low read args=text ; looks at disks
cryptsetup,nvme,mdadm status,isLuks,luksDump,list,smart-log,id-ctrl : low read args=text ; looks at disks
lvs,vgs,pvs,lvdisplay,vgdisplay,pvdisplay,smartctl,lsscsi,dumpe2fs,xfs_info,multipath : medium read args=text ; looks at disks
mount : high privilege bare args=text -t,-o,-L,-U,-O=val ; changes which disks are used
losetup,swapon : high privilege bare args=text -o=val -l,-s,--show,--list,--summary? ; changes which disks are used
umount,swapoff,udisksctl,fusermount,sshfs,mount.nfs,bindfs,overlayfs : high privilege args=text -t,-o,-L,-U,-O=val -l,-s,--show? ; changes
	which disks are used
shutdown,reboot,halt,poweroff,init,telinit,pm-suspend,suspend : critical signal args=text hard -c!medium,signal="calls a shutdown off" ;
	stops this machine
systemctl,service,rc-service,rc-update,initctl,sv,svc,s6-svc,supervisorctl,pm2,monit,chkconfig,invoke-rc.d,update-rc.d : high privilege
	args=text -t,--type,-p,--property,-n,--lines,-o,--output,-M,-H,--state,--signal,-s,--root=val ; changes services of this machine
systemctl status,show,list-units,list-unit-files,list-timers,list-sockets,list-dependencies,list-jobs,list-machines,is-active,is-enabled,
	is-failed,is-system-running,cat,get-default,help : low read args=text -t,--type,-p,--property,-n,--lines,-o,--output,
	--state=val ; looks at services
systemctl show-environment : medium secret args=text ; prints variables, with the secrets among them
systemctl enable,disable,mask,unmask,link,preset,edit,set-default,daemon-reload,reenable,set-property,revert,set-environment,
	import-environment,add-wants : critical persistence args=text hard ; changes which services run by themselves
systemctl poweroff,reboot,halt,suspend,hibernate,kexec,rescue,emergency,isolate : critical signal args=text hard ; stops this machine
supervisorctl,pm2,rc-service,sv status,list,ls,logs,show,describe,tail,info,monit : low read args=text ; looks at services
journalctl : low read args=text -u,--unit,-n,--lines,-S,--since,-U,--until,-p,--priority,-t,--identifier,-o,--output,-g,--grep,-D,
	--directory,--file,-M=val --vacuum-size,--vacuum-time,--vacuum-files,--rotate,--flush,--sync,--relinquish-var,--update-catalog,
	--setup-keys!high,delete="changes or drops logs" ; reads logs
dmesg : low read args=text -l,--level,-f,--facility,-s,--buffer-size,-n,--console-level=val -C,--clear,-c,--read-clear,-D,-E!high,
	delete="drops logs" ; reads logs
coredumpctl,aureport,ausearch,logread,lnav,multitail,systemd-analyze,systemd-cgls,systemd-cgtop,busctl,udevadm : low read args=text ; reads
	logs or the state of the system
useradd,userdel,usermod,groupadd,groupdel,groupmod,adduser,deluser,addgroup,delgroup,chpasswd,gpasswd,vipw,vigr,visudo,newusers,chsh,chfn,
	pwconv,grpconv,sudoedit,authconfig,pam-auth-update,faillock : critical privilege args=text hard ; changes who may use this machine
passwd : critical privilege args=text hard -S,--status? ; changes who may use this machine
chage : critical privilege args=text hard -l,--list? ; changes who may use this machine
sysctl : high write do=sysctl args=text -r,--pattern=val ; shows or changes settings of the kernel
modprobe,insmod,rmmod,depmod,kmod,dkms,setenforce,semanage,setsebool,restorecon,aa-enforce,aa-disable,apparmor_parser,auditctl,bpftool,
	bpftrace,ebpf,grubby,kdumpctl,setterm,loadkeys,chvt,swapctl,kextload,kextunload : critical privilege args=text hard ; changes the kernel or
	what protects it
kill,pkill,killall,killall5,skill,xkill,tkill : high signal do=kill args=text -s,--signal,-n,-u,-U,-g,-G,-P,-t,-x,--older,--newer=val ;
	sends a signal to processes
renice,cpulimit,cpufreq-set,cpupower : high signal args=text -n,-p,-u,-g=val ; changes how processes run
crontab,fcrontab : critical persistence do=crontab -u=val ; changes planned jobs
at,batch,atq : critical persistence do=at args=text -f=script -q,-t=val ; plans commands
atrm : high delete args=text ; drops planned jobs
logrotate,anacron,run-parts,update-ca-certificates,update-ca-trust,ldconfig,locale-gen,dpkg-statoverride,tzselect,hwclock,chronyc,ntpdate,
	updatedb,mandb,newaliases,postmap,a2enmod,a2ensite,caddy,varnishd,named,dnsmasq,smbd,exportfs,testparm,certbot,acme.sh,lego,mkcert,step,
	letsencrypt : high privilege args=text -c,-f,-s=val ; administers this machine
nginx,apachectl,apache2ctl,httpd,haproxy,sshd : high privilege args=text -t,-T? -c,-f,-s=val ; administers this machine
ltrace : high run-code args=run -e,-o,-p,-s,-u,-a,-n,-l,-x,-A,-D,-F,-w=val ; runs a program and watches it
strace,truss,dtruss : high run-code args=run -e,-o,-p,-s,-S,-u,-a,-b,-I,-O,-P,-X,-E,-l,-n,-x=val ; runs a program and watches it
valgrind,heaptrack,uftrace,rr : high run-code args=run long -o=val ; runs a program and watches it
perf : high run-code args=text sub ; measures programs
perf stat,record,trace : high run-code args=run -e,-o,-F,-g,-p,-C,-c,-r,-a,-i=val ; runs a program and measures it
perf report,list,script,annotate,diff,version : low read args=text -i,-o=val ; shows measurements
dtrace,gcore,ftrace,sysdig,stap,systrace,pstack,gstack,jstack,jmap,jps,jcmd,py-spy,rbspy,async-profiler : high run-code args=text ; watches
	programs
history,fc : medium history bare args=text -c,-d,-w,-r,-a,-n!high,history="changes the history of commands" -s,-e!high,
	run-code="runs a command of the history" -l? ; shows the history of commands
`

// programsWrappers run the command that their words name.
const programsWrappers = `
env : low read do=env args=text ; runs a command in an environment of its own
sudo,doas,pkexec,sudo-rs,calife,run0 : high privilege do=sudo args=run -u,--user,-g,--group,-h,--host,-p,--prompt,-C,--close-from,-r,--role,
	-t,--type,-T,--command-timeout,-U,--other-user,-D,--chdir,-R,--chroot,-a=val ; runs as another user
su,runuser,sg : high privilege do=su args=text -c,--command,--session-command,-s,--shell,-g,--group,-G,-w,-u,--user=val ; runs as another
	user
gosu,su-exec,setuidgid,s6-setuidgid : high privilege args=run skip=1 ; runs as another user
setpriv,chpst : high privilege args=run --reuid,--regid,--groups,--inh-caps,--ambient-caps,--bounding-set,--securebits,-u,-U,-e,-/,-b,-m,-d,
	-o,-p,-f,-c,-r,-t,-l,-L=val ; runs as another user
capsh : high privilege do=anytail args=text ; runs as another user
nice,gnice : low read args=run -n,--adjustment=val ; runs a command
ionice : low read args=run -c,--class,-n,--classdata=val -p,-P,-u!high,signal="changes how processes run" ; runs a command
chrt,taskset,setarch,faketime,envdir : low read args=run skip=1 -T,-P,-D=val -p,--pid!high,signal="changes how processes run" ; runs a
	command
setsid,nohup,unbuffer,chronic,catchsegv,linux32,linux64,i386,x86_64,fakechroot,eatmydata,dbus-run-session,dbus-launch,dumb-init,grc,noti,
	moreutils,mispipe,winpty,proxychains,proxychains4,torsocks,torify,tsocks : low read args=run ; runs a command
time,gtime : low read args=run -f,--format=val -o,--output=write ; measures a command
stdbuf : low read args=run -i,--input,-o,--output,-e,--error=val ; runs a command
caffeinate : low read args=run -t,-w=val ; runs a command
numactl : low read args=run -m,--membind,-N,--cpunodebind,-C,--physcpubind,-i,--interleave,-p,--preferred=val ; runs a command
rlwrap : low read args=run -b,-C,-D,-e,-f,-g,-l,-M,-O,-P,-q,-s,-S,-t,-w,-z=val ; runs a command
fakeroot,xvfb-run,systemd-inhibit,tini,choom,trickle : low read args=run -e,-f,-n,-p,-s,--server-args,--what,--who,--why,--mode,-l,-u,-d=val
	; runs a command
uclampset,softlimit,daemonize,start-stop-daemon : low read do=anytail args=text ; runs a command
ts : low read args=text ; puts times before lines
cross-env,cross-env-shell,env-cmd : low read do=env args=text ; runs a command in an environment of its own
with-contenv,execlineb,dotenv,dotenvx,with-env,envconsul,infisical,teller : low read do=anytail args=text ; runs a command in an environment
	of its own
timeout,gtimeout : low read args=run skip=1 -k,--kill-after,-s,--signal=val ; runs a command for a limited time
chroot,proot,jchroot,arch-chroot,schroot : high privilege do=remote args=run skip=1 --userspec,--groups,-r,-b,-w,-c=val ; runs a command
	below another root
unshare : high privilege args=run -S,--setuid,-G,--setgid,-R,--root,-w,--wd,--propagation,--setgroups,--map-users,--map-groups=val ; runs a
	command with other rights
nsenter : high privilege args=run -t,--target,-S,--setuid,-G,--setgid=val ; runs a command with other rights
systemd-run : high privilege args=run -p,--property,-u,--unit,-E,--setenv,--uid,--gid,-M,--machine,-H,--host,--description,--slice,
	--on-active,--on-calendar,--on-boot,--on-startup,--working-directory,--nice,--service-type=val --on-active,--on-calendar,--on-boot,
	--on-startup!critical,persistence="plans a command" ; runs a command as a service
runcon,newgrp,pivot_root,switch_root : high privilege args=run skip=1 -t,-u,-r,-l,-c=val ; runs a command with other rights
lxc-attach : high privilege do=anytail args=text ; runs a command with other rights
firejail,bwrap,bubblewrap,minijail,nsjail,firecracker,jailer : high privilege do=anytail args=text ; runs a command in a sandbox
xargs,gxargs : low read do=xargs args=run -a,--arg-file,-d,--delimiter,-E,-I,-L,-n,--max-args,-P,--max-procs,-s,--max-chars,
	--process-slot-var=val ; builds commands from what it reads
parallel,sem : medium run-code do=xargs args=run -j,--jobs,-a,--arg-file,-I,-n,-N,-L,-S,--sshlogin,--joblog,--results,--tmpdir,--timeout,-d,
	--delimiter,--colsep,--retries,--delay,--load,--halt,--workdir=val ; runs commands side by side
watch,gwatch,viddy,hwatch : low read do=join args=run -n,--interval,-q=val ; runs a command again and again
entr : medium run-code do=join args=run ; runs a command whenever files change
reflex,watchexec,chokidar,when-changed,modd,cargo-watch : medium run-code do=join args=run -c,-d,-e,-r,-w,-i,-f,-R,-G,-n,-s,--exts,--filter,
	--ignore,--watch=val ; runs a command whenever files change
hyperfine : low read do=join args=run -w,--warmup,-r,--runs,-m,--min-runs,-M,--max-runs,-L,--parameter-list,-P,-n,--command-name,-i,-S,
	--shell=val -p,--prepare,-c,--cleanup,-s,--setup,--conclude=shell --export-json,--export-markdown,--export-csv=write ; measures commands
script,scriptreplay,asciinema,ttyrec,termtosvg,vhs : medium write args=write -c,--command=shell -t,-T,-I,-O,-B,-E,-o,-i=val ; records a
	terminal
flock,lockf,setlock,dotlockfile : low read do=flock args=run skip=1 -c,--command,-w,--timeout,--wait,-E,--conflict-exit-code=val ; runs a
	command under a lock
busybox,toybox,coreutils : low read do=busybox args=text ; runs a program
tmux,screen,zellij,dtach,abduco,byobu,kitty,wezterm,alacritty,xterm,gnome-terminal,konsole,foot,urxvt,st,terminator,tilix,guake : high
	run-code do=tmux args=text -t,-s,-n,-c,-L,-S,-f,-F,-x,-y,-e,-p,-l,-b,-X,-r=val ; works in other terminals
direnv,aws-okta,envchain,teleport,granted,assume,saml2aws : high secret args=text ; gives secrets to commands
direnv status,version : low read args=text ; looks at direnv
direnv allow,deny,reload,edit,revoke : high persistence args=text ; lets a folder change this shell by itself
direnv exec : high run-code args=run skip=1 ; runs a command with a folder's settings
sshpass : high secret args=run -p,-f,-P=val ; gives a password to a command
sublet : high run-code do=sublet args=text ; sublet itself
pv,buffer,mbuffer,throttle,progress : low read args=read -s,-L,-i,-w,-N,-B,-m=val ; copies its input and shows how fast
inotifywait,fswatch,inotifywatch : low read args=read -e,-t,--format,--timefmt,-x,-r,-l=val -o,--outfile=write ; waits for changes
fzf,sk,peco,gum,percol,dmenu,rofi,choose,fzy,vipe,vidir : medium run-code args=text --preview,--bind,--execute=shell -q,-f,--height,
	--prompt,--header,-d,-n,-m,--query,--filter=val ; lets a person choose
xinit,startx,openbox,i3-msg,swaymsg,hyprctl,wmctrl,qdbus,gdbus,dbus-send : high run-code args=text ; drives the desktop
`

// programsShell are what bash runs itself, and other shells.
const programsShell = `
sh,bash,dash,zsh,ksh,mksh,pdksh,ash,fish,csh,tcsh,yash,posh,rbash,hush,oksh,loksh,bosh,osh,ysh : low run-code do=shell args=text -o,+o,-O,
	+O,--rcfile,--init-file=val --init-command=shell ; starts another shell
eval : low read do=eval args=text ; runs text as a command
source,. : high run-code do=source args=text ; runs a file in this shell
exec : medium shell-state do=exec args=run -a=val ; takes the place of the shell
command,builtin : low read do=command args=run ; runs a command past functions and aliases
trap : medium shell-state do=trap args=text ; plans code
cd,pushd,popd,chdir : low shell-state do=cd args=text ; changes the folder
dirs : low read args=text ; lists folders
exit,return,break,continue,logout : low shell-state do=exit args=text ; ends the list
alias,unalias : medium shell-state do=alias args=text ; defines aliases
unset : low shell-state do=unset args=text ; removes variables
set : low shell-state do=set args=text ; sets options of the shell
shopt : medium shell-state bare args=text -p? ; sets options of the shell
read : low shell-state do=read args=text -a,-d,-i,-n,-N,-p,-t,-u=val ; reads into a variable
mapfile,readarray : low shell-state do=read args=text -C,-c,-d,-n,-O,-s,-u=val ; reads into a variable
getopts : low shell-state do=read args=text ; reads into a variable
test,[ : low read do=test args=text ; tests a condition
export,declare,typeset,local,readonly : low shell-state do=export args=text ; sets variables
printf : low read do=printf args=text ; prints text
echo : low read do=echo args=text ; prints text
wait : low read do=wait args=text -p=val ; waits for jobs
jobs : low read do=jobs args=run ; lists jobs
true,false,:,pwd,type,times,caller,shift,bg,fg,let : low read args=text -n,-p,-a=val ; does next to nothing
disown : medium shell-state args=text ; lets a job outlive the shell
hash,enable : low read do=hash args=text -p,-f,-t=val ; what the shell knows of commands
bind,complete,compopt,compgen : medium shell-state do=bind args=text -x,-f,-m,-q,-u,-r,-F,-C,-A,-G,-P,-S,-W,-X,-o=val ; changes keys or
	completion
`
